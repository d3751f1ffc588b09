"""The `quietbits` command, a file per subcommand."""
