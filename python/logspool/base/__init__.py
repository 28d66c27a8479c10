"""What every room uses: locks, checks of options and classes, facts about the interpreter, the options in force."""
