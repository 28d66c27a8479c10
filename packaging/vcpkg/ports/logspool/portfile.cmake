# Builds the source tree that this folder is in: vcpkg install logspool --overlay-ports=packaging/vcpkg/ports
# Needed: cargo and Python 3.10 or later on the PATH.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/scripts/native_package.py")
  message(FATAL_ERROR "${SOURCE_PATH} is no source tree of logspool: use this port where it is, as an overlay")
endif()
find_program(CARGO cargo REQUIRED)
find_program(PYTHON3 python3 REQUIRED)

if(NOT DEFINED LOGSPOOL_PROFILE)
  set(LOGSPOOL_PROFILE release)
endif()
if(NOT DEFINED ENV{CARGO_TARGET_DIR})
  set(ENV{CARGO_TARGET_DIR} "${CURRENT_BUILDTREES_DIR}/target")
endif()
set(made "${CURRENT_BUILDTREES_DIR}/native")
vcpkg_execute_required_process(
  COMMAND "${PYTHON3}" "${SOURCE_PATH}/scripts/native_package.py" --profile "${LOGSPOOL_PROFILE}" --folder "${made}"
  WORKING_DIRECTORY "${SOURCE_PATH}"
  LOGNAME "build-${TARGET_TRIPLET}"
)

# One library serves both configurations: C's interface does not depend on them.
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)
file(INSTALL "${made}/include" DESTINATION "${CURRENT_PACKAGES_DIR}")
file(INSTALL "${made}/lib" DESTINATION "${CURRENT_PACKAGES_DIR}" PATTERN "cmake" EXCLUDE)
file(READ "${made}/lib/cmake/logspool/logspoolConfig.cmake" config)
# The file is one folder higher here.
string(REPLACE "CMAKE_CURRENT_LIST_DIR}/../../.." "CMAKE_CURRENT_LIST_DIR}/../.." config "${config}")
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
  # The shared library would not be copied to the program by a static triplet.
  file(REMOVE "${CURRENT_PACKAGES_DIR}/lib/liblogspool.so" "${CURRENT_PACKAGES_DIR}/lib/liblogspool.so.1")
  string(REGEX REPLACE "  add_library\\(logspool::logspool SHARED[^)]*\\)\n  set_target_properties[^)]*\\)\n" "" config "${config}")
  string(APPEND config "if(NOT TARGET logspool::logspool)\n  add_library(logspool::logspool ALIAS logspool::static)\nendif()\n")
  file(READ "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/logspool.pc" pc)
  string(REGEX REPLACE "Libs: [^\n]*" "Libs: \${prefix}/lib/liblogspool.a" pc "${pc}")
  file(WRITE "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/logspool.pc" "${pc}")
endif()
file(WRITE "${CURRENT_PACKAGES_DIR}/share/logspool/logspoolConfig.cmake" "${config}")
file(INSTALL "${made}/lib/cmake/logspool/logspoolConfigVersion.cmake" DESTINATION "${CURRENT_PACKAGES_DIR}/share/logspool")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/logspool")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE")
