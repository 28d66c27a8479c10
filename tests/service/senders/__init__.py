"""Programs that were not written here send to the service, and what they sent is found again."""
