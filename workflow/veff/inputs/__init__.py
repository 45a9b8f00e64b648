"""What a user brings: the reference, the variants, intervals; read and judged."""
