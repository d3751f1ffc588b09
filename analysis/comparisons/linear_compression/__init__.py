"""Tables behind the figures of linear compression."""
