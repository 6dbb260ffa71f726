# find_package(ntbshmem) defines the target ntbshmem::ntbshmem.
get_filename_component(_ntbshmem_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ntbshmem::ntbshmem)
  add_library(ntbshmem::ntbshmem SHARED IMPORTED)
  set_target_properties(ntbshmem::ntbshmem PROPERTIES
    IMPORTED_LOCATION "${_ntbshmem_prefix}/lib/libntbshmem.so"
    IMPORTED_SONAME "libntbshmem.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_ntbshmem_prefix}/include"
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${_ntbshmem_prefix}/lib")
endif()
set(ntbshmem_OSHRUN "${_ntbshmem_prefix}/bin/oshrun")
unset(_ntbshmem_prefix)
