"""Cases from the field: faults that trackers of database-backed queues report again and again."""
