# All from Debian's packages; docs/architecture.md says what each is for.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
# ISA-L inflates about three times as fast as zlib; without it zlib does the work.
pkg_check_modules(ISAL IMPORTED_TARGET libisal)
if(BUILD_TESTING)
	pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
endif()
