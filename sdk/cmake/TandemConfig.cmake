# find_package(Tandem) defines Tandem::tandem. The archive may lie anywhere: CMAKE_PREFIX_PATH names it.
get_filename_component(_tandem_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Tandem::tandem)
  add_library(Tandem::tandem SHARED IMPORTED)
  set_target_properties(Tandem::tandem PROPERTIES
    IMPORTED_LOCATION "${_tandem_root}/lib/libtandem.so.1"
    IMPORTED_SONAME "libtandem.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_tandem_root}/include")
endif()
set(Tandem_FOUND TRUE)
