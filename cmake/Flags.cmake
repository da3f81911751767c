# Flags on interface targets, linked PRIVATE: nothing leaks to whoever links our libraries.
add_library(driverec_flags INTERFACE)
target_compile_definitions(driverec_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(driverec_flags INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wformat=2 -Wundef
	-Wvla -Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough -fno-common)

if(DRIVEREC_SANITIZE)
	target_compile_options(driverec_flags INTERFACE
		-fsanitize=${DRIVEREC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_link_options(driverec_flags INTERFACE -fsanitize=${DRIVEREC_SANITIZE})
	# The thread sanitizer does not follow fences. Ours pair with readers that pread() the ring, whose bytes it does
	# not see either; what threads of one process share goes through acquire, release and compare-exchange.
	if(DRIVEREC_SANITIZE MATCHES thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
		target_compile_options(driverec_flags INTERFACE -Wno-tsan)
	endif()
endif()
if(DRIVEREC_COVERAGE)
	target_compile_options(driverec_flags INTERFACE --coverage)
	target_link_options(driverec_flags INTERFACE --coverage)
endif()
if(DRIVEREC_FUZZ)
	target_compile_options(driverec_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# driverec_module(NAME SOURCES…): one static library a module; only its include folder is public.
function(driverec_module name)
	add_library(${name} STATIC ${ARGN})
	target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>")
	target_link_libraries(${name} PRIVATE "$<BUILD_INTERFACE:driverec_flags>")
endfunction()
