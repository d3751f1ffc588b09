"""What every mechanism is to the rest of the house: tasks, mechanisms, privacy, registry entries."""
