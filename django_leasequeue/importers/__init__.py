"""Taking over what other queues have in the project's database: schedules, and waiting tasks."""
