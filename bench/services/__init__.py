"""Parts of the comparison of the service: what runs, and what it is compared with."""
