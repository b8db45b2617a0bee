# hazel_rpc.fbs -> rpc_method_rows.h: a row of a macro for each method of an rpc_service.
BEGIN { FS = "[(): ;]+" }
/^rpc_service / { service = $2; part = service == "Control" ? "CONTROL" : "SERVICE"; next }
/^}/ { service = "" }
service != "" {
  rows[part] = rows[part] " \\\n  X(" service ", " $2 ", " $3 ", " $4 ", " (/streaming/ ? "true" : "false") ")"
}
END { for (part in rows) print "#define TANDEM_" part "_METHODS(X)" rows[part] "\n" }
