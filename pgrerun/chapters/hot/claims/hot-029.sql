SELECT old_sees < committed AS still_there FROM rewrites WHERE command = 'CLUSTER'
