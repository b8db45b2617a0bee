# The engine of a project's agents, a child of the tree's root that stays when scenes change.
#
# Data flow: a trainer's step -> _act of the agents -> physics ticks -> _observe -> the trainer. In between no time passes:
# the tree is paused, and so is each space of physics. Each environment is a copy of the agent's scene with a world of its
# own, in a viewport that is drawn on demand.
extends Node

# How long a tick waits for the trainer, before the rest of Godot has its turn.
const PATIENCE_SECS := 0.002
const RELOADED := "the scene was loaded again; reset the environments"
const SCRIPT_ERROR := "a script error is in Godot's log above"
# An agent's properties that are the same in all scenes.
const SPACES := ["observation_size", "action_size", "observation_fields", "action_fields", "action_low", "action_high",
		"ticks_per_step", "telemetry", "contract_fields", "own_methods"]
const NO_PICTURES := "no pictures: start with --frames or --image_side, and one agent in the main scene"

var server  # the native half; null: not started, or ended
var spec: Dictionary
var num_envs := 0
var episode_limit := 0.0
var real_time := false
var image_side := 0
var templates := []  # the agents of the main scene
var agents := []  # of each environment
var views := []  # their viewports; empty: several templates, which share a world
var running := -1  # number of environments whose time passes; -1: unknown
var in_exchange := false  # a reset or step is unanswered
var stepping := []  # the environments of the step in progress
var ticks_left := 0
var unbegun := {}  # environments without an episode
var wanted := []  # images to draw: [call, env, width, height]; call null: of an observation
var tick_due_usec := 0.0
var arranged := true

func _init() -> void:
	pause_mode = PAUSE_MODE_PROCESS
	process_priority = -1000  # observes before the ticks of other nodes

# Returns the tree's host.
static func of(tree: SceneTree) -> Node:
	if not tree.has_meta("tandem_host"):
		var host: Node = load("res://addons/tandem/host.gd").new()
		tree.set_meta("tandem_host", host)
		tree.root.call_deferred("add_child", host)
	return tree.get_meta("tandem_host")

func joined(agent: Node) -> void:
	if not is_a_parent_of(agent):
		templates.append(agent)
		if arranged:
			call_deferred("_arrange")
		arranged = false

func left(agent: Node) -> void:
	if templates.has(agent):
		templates.erase(agent)
		if views.empty():
			_end_episodes(templates.duplicate())

func _end_episodes(new_agents: Array) -> void:
	agents = new_agents
	for env in num_envs:
		unbegun[env] = true

# Makes the engine, and the environments of the main scene that was loaded.
func _arrange():
	arranged = true
	if templates.empty():
		return
	if server == null:
		var code = _begin()
		if server == null:
			return get_tree().quit(1 if code == null else code)
	elif hash(_spec(templates[0])) != hash(spec):
		push_error("tandem: the new scene's agents have other spaces than the first scene's")
		return get_tree().quit(1)
	get_tree().paused = true
	PhysicsServer.set_active(true)
	Physics2DServer.set_active(true)
	for each in wanted:
		server.answer_draw(each, RELOADED)
	wanted = []
	ticks_left = 0
	if in_exchange:
		_done(RELOADED)
	for view in views:
		view.queue_free()
	views = []
	_end_episodes(templates.duplicate())
	if _scene() != null:
		agents = []
		for env in num_envs:
			_add_environment()
	running = -1
	_run([])

func _spec(agent: Node) -> Dictionary:
	var values := {}
	for property in SPACES:
		values[property] = agent.get(property)
	return values

# Starts to serve, or returns the exit code.
func _begin():
	var script = load("res://addons/tandem/server.gdns")
	if script == null or not script.can_instance():
		printerr("tandem 00:00:00.000 error: EngineStartFailed: expected libtandem_godot.so and libtandem.so.1 in the",
				" project's addons/tandem, found none that loads; build them by CMake and copy the folder")
		return 1
	spec = _spec(templates[0])
	var begun := spec.duplicate()
	for agent in templates:
		if hash(_spec(agent)) != hash(spec):
			begun["wrong"] = "agents of one scene: expected equal spaces, found others at %s than at %s" % [
					agent.get_path(), templates[0].get_path()]
	if not max(abs(spec["action_low"]), abs(spec["action_high"])) < INF:
		begun["wrong"] = "action_low, action_high: expected finite numbers"
	var description := {"infos": []}
	for space in [["observation", "-inf", "inf"], ["action", spec["action_low"], spec["action_high"]]]:
		if spec[space[0] + "_size"] > 0:
			description[space[0] + "_space"] = {"type": "Box", "dtype": "float32", "shape": [spec[space[0] + "_size"]],
					"low": [space[1]], "high": [space[2]]}
	begun["description"] = to_json(description)
	begun["host"] = self
	begun["agents"] = 0 if _scene() != null else templates.size()
	begun["max_episode_steps"] = templates[0].max_episode_steps
	begun["task"] = ProjectSettings.get_setting("application/config/name")
	begun["ticks_per_second"] = Engine.iterations_per_second
	begun["no_pictures"] = "" if OS.get_name() != "Server" and _scene() != null else NO_PICTURES
	var made = script.new()
	var answer: Array = made.begin(Array(OS.get_environment("TANDEM_GODOT_FLAGS").split("\u001f", false)), begun)
	if answer[0] >= 0:
		return answer[0]
	server = made
	num_envs = answer[1]
	episode_limit = answer[2]
	real_time = answer[3] > 0
	image_side = int(answer[4])
	_set_spaces(get_tree().root, null, templates.size() > 1)
	VisualServer.render_loop_enabled = false
	VisualServer.viewport_set_active(get_tree().root.get_viewport_rid(), false)

# Returns the root of the only agent's scene; null: the agents are in one world.
func _scene() -> Node:
	var root: Node = templates[0].owner if templates[0].owner != null else templates[0]
	return root if templates.size() == 1 and root.filename != "" else null

# Adds a copy of the agent's scene in a world of its own.
func _add_environment() -> void:
	var view := Viewport.new()
	view.world = World.new()
	view.world_2d = World2D.new()
	_set_spaces(view, null, false)
	view.render_target_update_mode = Viewport.UPDATE_DISABLED
	view.render_target_v_flip = true
	view.size = Vector2(320, 240)
	add_child(view)
	var arena: Node = load(_scene().filename).instance()
	view.add_child(arena)
	views.append(view)
	agents.append(arena.get_node(_scene().get_path_to(templates[0])))

func _physics_process(_delta: float):
	if server == null or not wanted.empty():
		return
	if ticks_left > 0:
		if real_time:
			var now := float(OS.get_ticks_usec())
			OS.delay_usec(int(max(0, tick_due_usec - now)))
			tick_due_usec = max(now, tick_due_usec) + 1e6 / Engine.iterations_per_second
		ticks_left -= 1
		if ticks_left > 0:
			return
		_exchange("_observe", stepping)
	while ticks_left == 0 and wanted.empty():
		var work = server.next(PATIENCE_SECS)
		if work == null:
			break
		elif typeof(work) != TYPE_INT:
			_exchange("_reset" if work.size() == 1 else "_act", work.back())
			if work.size() == 1:
				break  # a body in a new space is in it from the next tick on: the first step is after that, always
		elif work == 0:
			return get_tree().quit()
	if ticks_left == 0:
		_run([])

# Calls a function for each environment of a reset or step. The first failure ends it; null is a script error.
func _exchange(function: String, all: Array):
	in_exchange = true
	for each in all:
		var failure = call(function, each)
		if failure != "":
			return _done(SCRIPT_ERROR if failure == null else failure)
	if function == "_act":
		stepping = all
		ticks_left = spec["ticks_per_step"]
		_run(all)
	elif image_side > 0:
		for each in all:  # ends after they are drawn
			wanted.append([null, each[0] if each is Array else each, image_side, image_side])
	else:
		_done("")

func _done(failure: String) -> void:
	if failure != "":
		push_error("tandem: " + failure)
	in_exchange = false
	server.done(failure)

func _dictionary(pairs: Array) -> Dictionary:
	var values := {}
	for pair in pairs:
		values[pair[0]] = pair[1]
	return values

# The reset: [env, seed or null, the contract's fields, whether it begins, its seed].
func _reset(each: Array) -> String:
	if each[0] >= agents.size():
		return "the scene has no such agent any more"
	var agent: Node = agents[each[0]]
	var contract := _dictionary(each[2])
	if each[1] != null:
		agent.random.seed = each[1]
	if each[3]:
		agent.draws.seed = each[4]
	agent.steps = 0
	agent.reward = 0.0
	agent.done = false
	agent.failure = ""
	var failure := _failure(agent, "_start", agent._start(contract))
	agent.emit_signal("reset", each[1], contract)
	if not views.empty():
		_renew_world(each[0])
	unbegun.erase(each[0])
	return failure if failure != "" else _write(each[0], 0)

# Puts the environment's bodies, where they are now, in new spaces: a seed's trajectory depends on nothing before it. (But
# Bullet orders contacts that begin in the same tick by addresses in memory.)
func _renew_world(env: int) -> void:
	var view: Viewport = views[env]
	var arena := view.get_child(0)
	view.remove_child(arena)
	if not arena is CanvasItem:
		view.world = World.new()
	if not arena is Spatial:
		view.world_2d = World2D.new()
	view.add_child(arena)
	_renew_bodies(arena)
	_set_running(env, false)
	running = -1

# A body that was placed elsewhere keeps its old inertia in world coordinates until a tick, unless its mass is set.
func _renew_bodies(node: Node) -> void:
	if node is RigidBody:
		PhysicsServer.body_set_param(node.get_rid(), PhysicsServer.BODY_PARAM_MASS, node.mass)
		node.sleeping = false
	for child in node.get_children():
		_renew_bodies(child)

func _act(env: int) -> String:
	if unbegun.has(env):
		return RELOADED
	var agent: Node = agents[env]
	var action: Array = server.action(env)
	agent.failure = ""
	return _failure(agent, "_act", agent._act(action[0] if spec["action_size"] > 0 else _dictionary(action)))

func _observe(env: int) -> String:
	agents[env].steps += 1
	return _write(env, episode_limit)

func _write(env: int, limit: float) -> String:
	var agent: Node = agents[env]
	var observation = agent._observe()
	if agent.failure != "":
		return agent.failure
	var wrong: String = server.write(
			env, observation, agent.reward, agent.done, limit > 0 and agent.steps >= limit)
	return "" if wrong == "" else "%s: %s" % [agent.get_path(), wrong]

func _failure(agent: Node, function: String, answer) -> String:
	if agent.failure != "":
		return agent.failure
	return "" if answer == OK else "%s of %s: expected OK, found %s; %s, or `return OK` is missing" % [
			function, agent.get_path(), str(answer), SCRIPT_ERROR]

# Lets time pass in these environments only.
func _run(envs: Array) -> void:
	if envs.size() == running and (envs.empty() or envs.size() == agents.size()):
		return
	for env in views.size():
		_set_running(env, envs.has(env))
	if views.empty():
		_set_spaces(get_tree().root, null, not envs.empty())
		if get_tree().current_scene != null:
			get_tree().current_scene.pause_mode = PAUSE_MODE_INHERIT if envs.empty() else PAUSE_MODE_PROCESS
	running = envs.size()

func _set_running(env: int, value: bool) -> void:
	var arena: Node = views[env].get_child(0)
	arena.pause_mode = PAUSE_MODE_PROCESS if value else PAUSE_MODE_STOP
	_set_spaces(views[env], arena, value)

# Of a viewport, for an arena of unknown kind: null.
func _set_spaces(view: Viewport, arena: Node, value: bool) -> void:
	if not arena is CanvasItem:
		PhysicsServer.space_set_active(view.find_world().space, value)
	if not arena is Spatial:
		Physics2DServer.space_set_active(view.find_world_2d().space, value)

# Called by the native half, in `next`: draws the image in the rest of this turn, after the scene's transforms are known.
func draw(call: int, env: int, width: int, height: int) -> void:
	wanted.append([call, env, width, height])

func _process(_delta: float) -> void:
	if wanted.empty():
		return
	for each in wanted:  # of different environments
		var view: Viewport = views[each[1]]
		view.size = Vector2(each[2], each[3])
		view.set_size_override(true, Vector2(ProjectSettings.get_setting("display/window/size/width"),
				ProjectSettings.get_setting("display/window/size/height")))
		view.size_override_stretch = true
		view.render_target_update_mode = Viewport.UPDATE_ONCE
	VisualServer.force_draw(false)
	for each in wanted:
		var image: Image = views[each[1]].get_texture().get_data()
		image.convert(Image.FORMAT_RGB8)
		server.answer_draw(each, image.get_data())
	wanted = []
	if in_exchange:
		_done("")

func telemetry(env: int) -> Array:
	return Array(agents[env]._telemetry())

# Returns the bytes of the last environment's answer, or the text of a failure.
func call_own(method: String, request: PoolByteArray):
	var answer = PoolByteArray()
	for agent in agents:
		agent.failure = ""
		answer = agent._call_own(method, request)
		if agent.failure != "":
			return agent.failure
		if not typeof(answer) in [TYPE_STRING, TYPE_RAW_ARRAY]:
			return "_call_own: expected bytes or a text, found %s; null: %s" % [answer, SCRIPT_ERROR]
	return answer.to_utf8() if answer is String else answer

func clear() -> void:
	for agent in agents:
		agent._clear()

func _exit_tree() -> void:
	if server != null:
		var code: int = server.end()
		server = null
		get_tree().quit(code)
