"""How good are the predictions where the answer is known?"""
