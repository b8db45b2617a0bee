# TandemAgent: what a trainer sees of a game, and how it acts in it.
#
# A game's script extends this one: it sets the properties in _init, or the editor does, and overrides the functions below.
# Its scene, from the root down, is an environment; the engine (host.gd) makes as many as the trainer wants. If the main
# scene has several agents, these are the environments, in one world. Started by other means than addons/tandem/run, the
# node does nothing.
extends Node

# A new episode begins. `seed_value`: null if the random stream continues. `contract`: names of fields and their numbers.
signal reset(seed_value, contract)

export var observation_size := 0  # numbers of an observation
export var action_size := 0
# In their place: arrays of other types and shapes, such as {"place": ["float32", 2], "map": ["uint8", 8, 8]}.
export var observation_fields := {}
export var action_fields := {}
export var action_low := -1.0  # the action's range; actions may hold any value, NaN included
export var action_high := 1.0
export var ticks_per_step := 1  # physics ticks
export var max_episode_steps := 0  # 0: no limit; the flag --max_episode_steps is stronger
export var telemetry := PoolStringArray()  # names of the numbers of _telemetry
export var contract_fields := PoolStringArray()  # those that have an effect, such as "friction_range"
export var own_methods := PoolStringArray()

var reward := 0.0  # of the step, set by _observe
var done := false  # also
var steps := 0  # of the episode
var random := RandomNumberGenerator.new()  # the random stream of the seed
var draws := RandomNumberGenerator.new()  # that of the contract
var failure := ""  # why the reset, step or call failed

# Starts an episode. Returns OK; after a script error Godot returns null instead.
func _start(_contract: Dictionary):
	return OK

# Applies an action, a list of numbers or a dictionary of fields; the ticks of the step follow. Returns OK.
func _act(_action):
	return OK

# Returns the observation, a list of numbers or a dictionary of fields; sets reward and done.
func _observe():
	return []

func _telemetry():
	return []

# Answers a method of own_methods with bytes or a text.
func _call_own(_method: String, _request: PoolByteArray):
	return ""

# A trainer has left: undoes what own methods did.
func _clear():
	pass

# Fails the reset, step or call, with a text for the trainer.
func fail(text: String) -> void:
	failure = text

# Returns a number of the contract's field, drawn from its range; `otherwise` without it.
func drawn(contract: Dictionary, field: String, otherwise: float) -> float:
	var values = contract.get(field)
	return otherwise if values == null else draws.randf_range(values[0], values[values.size() - 1])

# Returns element i of an action, inside of its range.
func clipped(action, i := 0) -> float:
	return 0.0 if is_nan(action[i]) else clamp(action[i], action_low, action_high)

func _ready() -> void:
	_tell("joined")

func _exit_tree() -> void:
	_tell("left")

func _tell(what: String) -> void:
	if OS.has_environment("TANDEM_GODOT_FLAGS"):
		load("res://addons/tandem/host.gd").of(get_tree()).call(what, self)
