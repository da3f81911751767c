# One page a command, printed by driverec itself from its option tables.
file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/commands.c" lines REGEX "^\t&command_")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/commands.c")
set(man_dir "${CMAKE_BINARY_DIR}/man")
file(MAKE_DIRECTORY "${man_dir}")
set(pages "${man_dir}/driverec.1")
add_custom_command(OUTPUT "${man_dir}/driverec.1" DEPENDS driverec VERBATIM
	COMMAND $<TARGET_FILE:driverec> --man > "${man_dir}/driverec.1")
foreach(line IN LISTS lines)
	string(REGEX REPLACE "^\t&command_([a-z_]+),.*" "\\1" name "${line}")
	string(REPLACE "_" "-" name "${name}")
	set(page "${man_dir}/driverec-${name}.1")
	add_custom_command(OUTPUT "${page}" DEPENDS driverec VERBATIM
		COMMAND $<TARGET_FILE:driverec> --man ${name} > "${page}")
	list(APPEND pages "${page}")
endforeach()
add_custom_target(man ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
