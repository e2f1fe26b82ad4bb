# Writes build_info.h, at build time, so that the commit is that of the sources that were compiled. The file changes
# only when its content does.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE failed
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit " with uncommitted changes")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [=[
// Written by the build: what was compiled, by what.
#pragma once

namespace assay::cli {
inline constexpr char kVersion[] = "@VERSION@";
inline constexpr char kCommit[] = "@commit@";
inline constexpr char kCompiler[] = "@COMPILER@";
inline constexpr char kFlags[] = "@FLAGS@";
}  // namespace assay::cli
]=])
