# Shared by the scripts beside it: where torch is, and how long things took.
deps=${FAULTLINE_DEPS:-${XDG_CACHE_HOME:-${HOME:?set HOME, or FAULTLINE_DEPS to the folder that torch shall stand in}/.cache}/faultline}
default_torch=${FAULTLINE_TORCH:-$deps/torch-2.15.0/torch}

# configure PRESET [cmake flags…]
configure() {
  local log=build/configure.log
  cmake --preset "$1" -DFAULTLINE_TORCH="$default_torch" "${@:2}" > "$log" 2>&1 || { cat "$log" >&2; return 1; }
}
