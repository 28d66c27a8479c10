"""What belongs to the whole process: `install()`, its options, the keeper, the end, captured descriptors."""
