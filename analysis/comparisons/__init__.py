"""Tables behind figures: mechanisms beside each other, with references and bounds."""
