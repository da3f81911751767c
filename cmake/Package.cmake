# Installs the producer library: headers, both libraries, pkg-config and CMake package.
include(CMakePackageConfigHelpers)

install(TARGETS libdriverec libdriverec_static EXPORT driverec
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/ringbuf/include/driverec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/driverec)
install(EXPORT driverec NAMESPACE driverec:: FILE driverecTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/driverecConfig.cmake.in ${PROJECT_BINARY_DIR}/driverecConfig.cmake
	INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/driverecConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/driverecConfig.cmake ${PROJECT_BINARY_DIR}/driverecConfigVersion.cmake
	DESTINATION ${package_dir})

# A distribution may give absolute folders: those stand as they are, others below the prefix.
foreach(folder LIBDIR INCLUDEDIR)
	if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
		set(DRIVEREC_PC_${folder} "${CMAKE_INSTALL_${folder}}")
	else()
		set(DRIVEREC_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
	endif()
endforeach()
configure_file(cmake/driverec.pc.in ${PROJECT_BINARY_DIR}/driverec.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/driverec.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
