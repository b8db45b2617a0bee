# The game's side of Godot RL Agents, for a scene with one agent of Tandem's: answers the messages of GodotEnv, without
# the add-on's library.
extends Node

var tcp := StreamPeerTCP.new()
var agent: Node
var ticks := 0

func _init() -> void:
	process_priority = -1000  # observes before the ticks of other nodes, as host.gd does

func _ready() -> void:
	agent = get_tree().root.find_node("Agent", true, false)
	while tcp.get_status() != StreamPeerTCP.STATUS_CONNECTED:
		var _error := tcp.connect_to_host("127.0.0.1", int(OS.get_environment("GODOT_PEER_PORT")))
		OS.delay_msec(50)
	tcp.set_no_delay(true)
	_take()  # handshake
	_take()  # env_info
	_send({"type": "env_info", "n_agents": 1,
		"observation_space": {"obs": {"size": [agent.observation_size], "space": "box"}},
		"action_space": {"move": {"size": agent.action_size, "action_type": "continuous"}}})
	call_deferred("_serve")  # once the scene is ready, too

func _take() -> Dictionary:
	return parse_json(tcp.get_data(tcp.get_32())[1].get_string_from_utf8())

func _send(message: Dictionary) -> void:
	var bytes := to_json(message).to_utf8()
	tcp.put_32(bytes.size())
	var _error := tcp.put_data(bytes)

func _begin() -> void:
	agent.steps = 0
	agent._start({})

# Answers messages until a step.
func _serve() -> void:
	while true:
		var message := _take()
		if message["type"] == "reset":
			_begin()
			_send({"type": "reset", "obs": [{"obs": agent._observe()}]})
		elif message["type"] == "action":
			agent._act(message["action"][0]["move"])
			ticks = agent.ticks_per_step
			return
		else:
			get_tree().quit()
			return

func _physics_process(_delta: float) -> void:
	if ticks == 0:
		return
	ticks -= 1
	if ticks > 0:
		return
	agent.steps += 1
	var done: bool = agent.steps >= agent.max_episode_steps
	var obs := [{"obs": agent._observe()}]
	if done:
		_begin()
	_send({"type": "step", "obs": obs, "reward": [agent.reward], "done": [done]})
	_serve()
