"""What do variants do on the chromosomes of one person?"""
