"""Which models a run has, and what is known of them."""
