"""How do all pictures look?"""

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "veff",
    "text.parse_math": False,  # names may hold dollar signs
}
