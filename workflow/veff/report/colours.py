"""Which colour means what, on the page and in charts, figures, tracks and the README?

Okabe and Ito's orange and blue, which colour-blind readers tell apart; page.css has the same, as
they are read on either theme.
"""

UP, DOWN = "#D55E00", "#0072B2"  # more, and fewer, reads with the alternate allele
REFERENCE, ALTERNATE = "#000000", "#AA3377"
