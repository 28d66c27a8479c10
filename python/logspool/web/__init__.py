"""What the middlewares for web applications share."""
