"""The public rest: penalties, sets, and what is asked of them."""
