# Run by the installation, which knows where it goes; taskcell_made: where to make it.
foreach(kind system user)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/taskcell-gateway.${kind}.service.in ${taskcell_made}/${kind}/taskcell-gateway.service @ONLY)
  file(INSTALL ${taskcell_made}/${kind}/taskcell-gateway.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/${kind})
endforeach()
file(WRITE ${taskcell_made}/taskcell-profile.1 ".so man1/taskcell-launch.1\n") # which tells of both
file(GLOB pages ${CMAKE_CURRENT_LIST_DIR}/../../man/* ${taskcell_made}/taskcell-profile.1)
foreach(page ${pages})
  cmake_path(GET page FILENAME name)
  string(REGEX MATCH "[0-9]$" section ${name})
  execute_process(COMMAND gzip -9nc ${page} OUTPUT_FILE ${taskcell_made}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL ${taskcell_made}/${name}.gz DESTINATION ${CMAKE_INSTALL_PREFIX}/share/man/man${section}
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
