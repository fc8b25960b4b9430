# Shared by the scripts beside it: where torch is, and how long things took.
deps=${FAULTLINE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/faultline}
default_torch=${FAULTLINE_TORCH:-$deps/torch-2.15.0/torch}

# configure PRESET [cmake flags…]
configure() {
  local preset=$1
  shift
  cmake --preset "$preset" -DFAULTLINE_TORCH="$default_torch" "$@" > "build/configure-$preset.log" 2>&1 ||
    { cat "build/configure-$preset.log" >&2; return 1; }
}
