"""Local mechanisms for unit vectors: messages from caps of the sphere, and short codes."""
