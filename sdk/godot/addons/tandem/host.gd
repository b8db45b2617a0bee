# The engine of a project's agents, a child of the tree's root that stays when scenes change.
#
# Data flow: a trainer's step -> _act of the agents -> physics ticks -> _observe -> the trainer. In between no time passes:
# the tree is paused, and so is each space of physics. Each environment is a copy of the agent's scene with a world of its
# own, in a viewport that is drawn on demand.
extends Node

# How long a tick waits for the trainer, before the rest of Godot has its turn.
const PATIENCE_SECS := 0.002
const RELOADED := "the scene was loaded again; reset the environments"
const NO_PICTURES := "no pictures: start with --frames or --image_side, and one agent in the main scene"

var server  # the native half; null: not started, or ended
var spec: Dictionary
var flags: Dictionary
var num_envs := 0
var templates := []  # the agents of the main scene
var agents := []  # of each environment
var views := []  # their viewports; empty: several templates, which share a world
var running := {}  # the environments whose time passes
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
	templates.erase(agent)
	if views.empty():
		agents.erase(agent)

# Makes the engine, and the environments of the main scene that was loaded.
func _arrange():
	arranged = true
	if templates.empty():
		return
	if server == null:
		_begin()
	elif hash(_spec(templates[0])) != hash(spec):
		push_error("tandem: the new scene's agents have other spaces than the first scene's")
		return get_tree().quit(1)
	if server == null:
		return
	get_tree().paused = true
	PhysicsServer.set_active(true)
	Physics2DServer.set_active(true)
	var in_exchange := not stepping.empty()
	for each in wanted:
		if each[0] == null:
			in_exchange = true
		else:
			server.answer_draw(each[0], RELOADED)
	if in_exchange:
		server.done(RELOADED)
	ticks_left = 0
	stepping = []
	wanted = []
	for view in views:
		view.queue_free()
	views = []
	agents = templates.duplicate()
	if templates.size() == 1 and templates[0].owner != null:
		agents = []
		for env in num_envs:
			_add_environment()
	running = {0: true}
	_run([])
	for env in agents.size():
		unbegun[env] = true

func _spec(agent: Node) -> Dictionary:
	var fields := []
	for kind in [["obs/", agent.observation_fields], ["action/", agent.action_fields]]:
		for path in kind[1]:
			var field: Array = kind[1][path]
			fields.append([kind[0] + path, field[0], field.slice(1, field.size()) if field.size() > 1 else []])
	return {
		"observation_size": agent.observation_size,
		"action_size": agent.action_size,
		"fields": fields,
		"telemetry": agent.telemetry,
		"contract_fields": agent.contract_fields,
		"own_methods": agent.own_methods,
		"step_secs": float(agent.ticks_per_step) / Engine.iterations_per_second,
	}

func _begin():
	var script = load("res://addons/tandem/server.gdns")
	if script == null or not script.can_instance():
		printerr("tandem 00:00:00.000 error: EngineStartFailed: expected libtandem_godot.so and libtandem.so.1 in the",
				" project's addons/tandem, found none that loads; build them by CMake and copy the folder")
		return get_tree().quit(1)
	spec = _spec(templates[0])
	var begun := spec.duplicate()
	begun["wrong"] = ""
	for agent in templates:
		if hash(_spec(agent)) != hash(spec):
			begun["wrong"] = "agents of one scene: expected equal spaces, found others at %s than at %s" % [
					agent.get_path(), templates[0].get_path()]
	begun["host"] = self
	begun["agents"] = templates.size()
	begun["task"] = ProjectSettings.get_setting("application/config/name")
	begun["flags"] = [
		["max_episode_steps", "steps after which an episode is truncated; 0: no limit", templates[0].max_episode_steps],
		["real_time", "1: no faster than a clock", 0],
		["image_side", "pixels of an image beside each observation; 0: none", 0],
	]
	var made = script.new()
	var answer: Array = made.begin(Array(OS.get_environment("TANDEM_GODOT_FLAGS").split("\u001f", false)), begun)
	if answer[0] >= 0:
		return get_tree().quit(answer[0])
	server = made
	num_envs = answer[1]
	flags = answer[2]
	_set_spaces(get_tree().root, templates.size() > 1, true, true)
	VisualServer.render_loop_enabled = false
	VisualServer.viewport_set_active(get_tree().root.get_viewport_rid(), false)

# Returns [the description of the task, JSON; the side of images], or what is wrong with these flags.
func describe(its_flags: Dictionary):
	var side := int(its_flags["image_side"])
	if side > 0 and not _draws():
		return "--image_side: expected 0, found %d; %s" % [side, NO_PICTURES]
	var first: Node = templates[0]
	var description := {"max_episode_steps": int(its_flags["max_episode_steps"]), "infos": []}
	for space in [["observation_space", first.observation_size, "-inf", "inf"],
			["action_space", first.action_size, first.action_low, first.action_high]]:
		if space[1] > 0:
			description[space[0]] = {
				"type": "Box", "shape": [space[1]], "low": [space[2]], "high": [space[3]], "dtype": "float32"}
	return [to_json(description), side]

# Adds a copy of the agent's scene in a world of its own.
func _add_environment() -> void:
	var template: Node = templates[0]
	var view := Viewport.new()
	view.world = World.new()
	view.world_2d = World2D.new()
	_set_spaces(view, false, true, true)
	view.render_target_update_mode = Viewport.UPDATE_DISABLED
	view.render_target_v_flip = true
	view.size = Vector2(320, 240)
	add_child(view)
	var arena: Node = load(template.owner.filename).instance()
	view.add_child(arena)
	views.append(view)
	agents.append(arena.get_node(template.owner.get_path_to(template)))

func _physics_process(_delta: float):
	if server == null or not wanted.empty():
		return
	if ticks_left > 0:
		if flags["real_time"] > 0:
			var now := float(OS.get_ticks_usec())
			OS.delay_usec(int(max(0, tick_due_usec - now)))
			tick_due_usec = max(now, tick_due_usec) + 1e6 / Engine.iterations_per_second
		ticks_left -= 1
		if ticks_left > 0:
			return
		_finish_step()
	while ticks_left == 0 and wanted.empty():
		var work = server.next(PATIENCE_SECS)
		if work == null:
			break
		elif typeof(work) == TYPE_BOOL:
			if not work:
				return get_tree().quit()
		elif work.size() == 1:
			_reset(work[0])
		else:
			_start_step(work[1])
	if ticks_left == 0:
		_run([])

# Each of `resets`: [env, seed or null, and with a contract: it, whether it begins, its seed].
func _reset(resets: Array) -> void:
	var failure := ""
	for each in resets:
		var env: int = each[0]
		if env >= agents.size():
			failure = "the scene has no agents"
			break
		var agent: Node = agents[env]
		var contract := {}
		if each[1] != null:
			agent.random.seed = each[1]
		if each.size() > 2:
			contract = each[2]
			if each[3]:
				agent.draws.seed = each[4]
		agent.steps = 0
		agent.reward = 0.0
		agent.done = false
		agent.failure = ""
		failure = _failure(agent, "_start", agent._start(contract))
		agent.emit_signal("reset", each[1], contract)
		if not views.empty():
			_renew_world(env)
		if failure == "":
			failure = _write(env)
		if failure != "":
			break
		unbegun.erase(env)
	_done(failure, resets)

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
	running[env] = true
	_set_running(env, false)

# A body that was placed elsewhere keeps its old inertia in world coordinates until a tick, unless its mass is set.
func _renew_bodies(node: Node) -> void:
	if node is RigidBody:
		PhysicsServer.body_set_param(node.get_rid(), PhysicsServer.BODY_PARAM_MASS, node.mass)
		node.sleeping = false
	for child in node.get_children():
		_renew_bodies(child)

func _start_step(envs: Array):
	var failure := ""
	for env in envs:
		if unbegun.has(env) or env >= agents.size():
			failure = RELOADED
			break
		var agent: Node = agents[env]
		agent.failure = ""
		failure = _failure(agent, "_act", agent._act(server.action(env)))
		if failure != "":
			break
	if failure != "":
		return _done(failure, envs)
	stepping = envs
	ticks_left = agents[envs[0]].ticks_per_step if not envs.empty() else 1
	_run(envs)

func _finish_step() -> void:
	var failure := ""
	for env in stepping:
		agents[env].steps += 1
		failure = _write(env, flags["max_episode_steps"])
		if failure != "":
			break
	_done(failure, stepping)
	stepping = []

func _write(env: int, limit := 0.0) -> String:
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
	return "" if answer == OK else "%s of %s: expected OK, found %s; a script error is in Godot's log, or `return OK` is missing" % [
			function, agent.get_path(), str(answer)]

# Ends the exchange of these environments, or those of these resets: with images after they are drawn.
func _done(failure: String, envs: Array) -> void:
	var side := int(flags["image_side"])
	if failure != "":
		push_error("tandem: " + failure)
	elif side > 0 and not envs.empty():
		for env in envs:
			wanted.append([null, env[0] if env is Array else env, side, side])
		return
	server.done(failure)

# Lets time pass in these environments only.
func _run(envs: Array) -> void:
	if envs.size() == running.size() and (envs.empty() or envs.size() == agents.size()):
		return
	var wanted_running := {}
	for env in envs:
		wanted_running[env] = true
	for env in views.size():
		if running.has(env) != wanted_running.has(env):
			_set_running(env, wanted_running.has(env))
	if views.empty():
		_set_spaces(get_tree().root, not envs.empty(), true, true)
		if get_tree().current_scene != null:
			get_tree().current_scene.pause_mode = PAUSE_MODE_INHERIT if envs.empty() else PAUSE_MODE_PROCESS
	running = wanted_running

func _set_running(env: int, value: bool) -> void:
	if value:
		running[env] = true
	else:
		running.erase(env)
	var arena: Node = views[env].get_child(0)
	arena.pause_mode = PAUSE_MODE_PROCESS if value else PAUSE_MODE_STOP
	_set_spaces(views[env], value, not arena is CanvasItem, not arena is Spatial)

func _set_spaces(view: Viewport, value: bool, has_3d: bool, has_2d: bool) -> void:
	if has_3d:
		PhysicsServer.space_set_active(view.find_world().space, value)
	if has_2d:
		Physics2DServer.space_set_active(view.find_world_2d().space, value)

func _draws() -> bool:
	return OS.get_name() != "Server" and templates.size() == 1

# Called by the native half, in `next`: draws the image in the rest of this turn, after the scene's transforms are known.
func draw(call: int, env: int, width: int, height: int) -> void:
	if not _draws():
		server.answer_draw(call, NO_PICTURES)
	else:
		wanted.append([call, env, width, height])

func _process(_delta: float) -> void:
	var done := false
	while not wanted.empty():
		var batch := {}
		var later := []
		for each in wanted:
			if batch.has(each[1]):
				later.append(each)
				continue
			batch[each[1]] = each
			var view: Viewport = views[each[1]]
			view.size = Vector2(each[2], each[3])
			view.set_size_override(true, Vector2(ProjectSettings.get_setting("display/window/size/width"),
					ProjectSettings.get_setting("display/window/size/height")))
			view.size_override_stretch = true
			view.render_target_update_mode = Viewport.UPDATE_ONCE
		VisualServer.force_draw(false)
		for env in batch:
			var image: Image = views[env].get_texture().get_data()
			image.convert(Image.FORMAT_RGB8)
			if batch[env][0] == null:
				done = true
				server.write_image(env, image.get_data())
			else:
				server.answer_draw(batch[env][0], batch[env][2], batch[env][3], image.get_data())
		wanted = later
	if done:
		server.done("")

func telemetry(env: int) -> Array:
	return Array(agents[env]._telemetry())

# Returns [failure, answer]: the answer of the last environment.
func call_own(method: String, request: PoolByteArray) -> Array:
	var answer = "no agent"
	for agent in agents:
		agent.failure = ""
		answer = agent._call_own(method, request)
		if agent.failure == "" and answer == null:
			agent.failure = "_call_own returned null: a script error is in Godot's log above"
		if agent.failure != "":
			return [agent.failure, ""]
	return ["", answer]

func clear() -> void:
	for agent in agents:
		agent._clear()

func _exit_tree() -> void:
	if server != null:
		var code: int = server.end()
		server = null
		OS.exit_code = code
