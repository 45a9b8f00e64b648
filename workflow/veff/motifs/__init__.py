"""Which motif does an allele gain or lose?"""
