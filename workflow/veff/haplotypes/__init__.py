"""What do the variants of one chromosome do together?"""
