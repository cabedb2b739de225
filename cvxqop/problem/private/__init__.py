"""What is private and what is public: lists, matches, and what a plan froze."""
