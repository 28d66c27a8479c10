"""What a process says of itself and of others: counters, health, the lag of event loops."""
