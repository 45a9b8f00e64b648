"""From windows of the genome to effects."""
