"""Privacy of messages that arrive without their senders: divergences of shuffled letters, computed and published."""
