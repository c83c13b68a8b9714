// Keeps the core library's target valid while TW_ONLY selects folders that have no source file yet.
