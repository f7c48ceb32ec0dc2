package resp

func keyCommands() []command { return nil }
