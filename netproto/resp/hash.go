package resp

func hashCommands() []command { return nil }
