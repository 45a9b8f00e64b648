"""The only place that imports Cherimoya: models loaded, run and explained."""
