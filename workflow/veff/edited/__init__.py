"""What do edits do that nobody carries: every change of a region, and a list of replacements?"""
