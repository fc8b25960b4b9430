# faultline_layer(NAME [PUBLIC libs…] [PRIVATE libs…]): one shared library from every .cpp below the current folder.
#
# Shared, because a plugin and the CLI that loads it must see one set of registries.
function(faultline_layer name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  set(target faultline_${name})
  add_library(${target} SHARED ${sources})
  add_library(faultline::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(${target} PUBLIC faultline::torch ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  faultline_target(${target})
  install(TARGETS ${target} EXPORT faultlineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# What every target of ours shares: warnings as errors, the one precompiled header, sanitizers when asked for.
function(faultline_target target)
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "" UNITY_BUILD ${FAULTLINE_UNITY})
  target_link_libraries(${target} PRIVATE faultline_options)
  if(NOT target STREQUAL "faultline_pch")
    target_precompile_headers(${target} REUSE_FROM faultline_pch)
  endif()
endfunction()
