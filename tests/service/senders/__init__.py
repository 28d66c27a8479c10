"""Programs of other projects send to the service, and their records are found again."""
