# Defines faultline::torch from an unpacked PyTorch wheel or a libtorch zip.
#
# torch's own find_package(Torch) asks for a CUDA toolkit and links libtorch.so, which needs every CUDA library;
# the two CPU libraries are all that is used here. Installed beside the package's config file.
if(TARGET faultline::torch)
  return()
endif()

set(_faultline_advice "Run ci/setup, or pass -DFAULTLINE_TORCH=DIR with the 'torch' folder of an installed wheel or \
the 'libtorch' folder of an unpacked zip.")
if(FAULTLINE_TORCH MATCHES "\\.(zip|whl)$")
  message(FATAL_ERROR "FAULTLINE_TORCH='${FAULTLINE_TORCH}' is an archive: unpack it and name the 'libtorch' (zip) or "
    "'torch' (wheel) folder in it.")
endif()
if(NOT EXISTS "${FAULTLINE_TORCH}/include/torch/csrc/api/include/torch/version.h")
  message(FATAL_ERROR "FAULTLINE_TORCH='${FAULTLINE_TORCH}' has no PyTorch headers. ${_faultline_advice}")
endif()

set(_faultline_version_header "${FAULTLINE_TORCH}/include/torch/headeronly/version.h")
if(NOT EXISTS "${_faultline_version_header}")
  set(_faultline_version_header "${FAULTLINE_TORCH}/include/torch/csrc/api/include/torch/version.h")
endif()
file(STRINGS "${_faultline_version_header}" _faultline_version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX MATCH "MAJOR ([0-9]+)" _ "${_faultline_version_lines}")
set(_faultline_torch_major "${CMAKE_MATCH_1}")
string(REGEX MATCH "MINOR ([0-9]+)" _ "${_faultline_version_lines}")
set(FAULTLINE_TORCH_VERSION "${_faultline_torch_major}.${CMAKE_MATCH_1}")
if(FAULTLINE_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "FAULTLINE_TORCH='${FAULTLINE_TORCH}' is PyTorch ${FAULTLINE_TORCH_VERSION}; faultline supports "
    "2.11 to 2.15. ${_faultline_advice}")
elseif(FAULTLINE_TORCH_VERSION VERSION_GREATER 2.15)
  message(WARNING "FAULTLINE_TORCH='${FAULTLINE_TORCH}' is PyTorch ${FAULTLINE_TORCH_VERSION}, newer than what faultline "
    "was tested with (2.11 to 2.15). If it does not compile, ci/setup gets 2.15.0.")
endif()
foreach(_lib IN ITEMS c10 torch_cpu)
  if(NOT EXISTS "${FAULTLINE_TORCH}/lib/lib${_lib}.so")
    message(FATAL_ERROR "FAULTLINE_TORCH='${FAULTLINE_TORCH}' has no lib/lib${_lib}.so. ${_faultline_advice}")
  endif()
endforeach()

find_package(Threads REQUIRED)
foreach(_lib IN ITEMS c10 torch_cpu)
  add_library(faultline::${_lib} SHARED IMPORTED)
  set_target_properties(faultline::${_lib} PROPERTIES IMPORTED_LOCATION "${FAULTLINE_TORCH}/lib/lib${_lib}.so")
endforeach()
add_library(faultline::torch INTERFACE IMPORTED)
set_target_properties(faultline::torch PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "${FAULTLINE_TORCH}/include;${FAULTLINE_TORCH}/include/torch/csrc/api/include")
target_compile_features(faultline::torch INTERFACE cxx_std_20)
# no-as-needed: operators register themselves from torch_cpu's static initialisers.
target_link_libraries(faultline::torch INTERFACE
  "-Wl,--push-state,--no-as-needed" faultline::torch_cpu faultline::c10 "-Wl,--pop-state"
  Threads::Threads ${CMAKE_DL_LIBS})
# Changes the layout of c10d classes: every file of a program must agree on it.
target_compile_definitions(faultline::torch INTERFACE USE_DISTRIBUTED)
