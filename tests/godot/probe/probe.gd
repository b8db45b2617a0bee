# An agent with fields, for the tests: a ball that falls, and that own methods misuse.
extends "res://addons/tandem/agent.gd"

var ball := RigidBody.new()
var mishap := ""


func _init() -> void:
	observation_fields = {"place": ["float32", 3], "marks": ["uint8", 2, 4], "steps": ["int64"]}
	action_fields = {"push": ["float32", 2]}
	ticks_per_step = 3
	telemetry = PoolStringArray(["height", "gravity"])
	contract_fields = PoolStringArray(["mass_scale_range"])
	own_methods = PoolStringArray(["mishap", "echo"])


func _ready() -> void:
	var collision := CollisionShape.new()
	collision.shape = SphereShape.new()
	ball.add_child(collision)
	add_child(ball)


func _start(contract: Dictionary):
	ball.mass = drawn(contract, "mass_scale_range", 1.0)
	ball.transform = Transform(Basis(), Vector3(random.randf(), 10, random.randf()))
	ball.linear_velocity = Vector3()
	return OK


func _act(action):
	if mishap == "raise":
		return null.no_such_method()
	if mishap == "hang":
		OS.delay_msec(100000)
	var push = action["push"]
	ball.apply_central_impulse(Vector3(clipped(push, 0), 0, clipped(push, 1)))
	return OK


func _observe():
	reward = ball.mass
	var at := ball.translation
	var height := int(clamp(at.y * 10 + 128, 0, 255))
	if mishap == "text":
		return {"place": ["a", "b", "c"], "marks": PoolByteArray([0, 1, 2, 3, 4, 5, 6, 7]), "steps": [0]}
	if mishap == "short":
		return {"place": [at.x], "marks": PoolByteArray([height, 1, 2, 3, 4, 5, 6, 7]), "steps": [0]}
	return {
		"place": [at.x, at.y, at.z],
		"marks": PoolByteArray([height, 1, 2, 3, 4, 5, 6, 7]),
		"steps": [(1 << 53) + steps],
	}


func _telemetry():
	return [ball.translation.y, -9.8]


func _call_own(method: String, request: PoolByteArray):
	if method == "echo":
		return request
	mishap = request.get_string_from_utf8()
	if mishap == "reload":
		get_tree().call_deferred("reload_current_scene")
	if mishap == "close":  # what the window's button does
		get_tree().notification(MainLoop.NOTIFICATION_WM_QUIT_REQUEST)
	if mishap == "free":
		queue_free()
	if mishap == "number":
		return 3
	if mishap == "refuse":
		fail("refused by the script")
	return mishap
