"""How far apart the outputs of one mechanism are for two inputs: a file per noise or mechanism, and one for shuffled letters."""
