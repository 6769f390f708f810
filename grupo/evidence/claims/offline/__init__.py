"""Learning from a log alone, in finite environments with tables as policies.

outcomes              the log of one-step choices and what followed them
return_conditioned    cloning of the actions that were followed by the return that is asked for
dichotomy_of_control  cloning conditioned on a latent that has no information about luck
a2pr                  imitation of logged and generated actions of positive advantage
"""
