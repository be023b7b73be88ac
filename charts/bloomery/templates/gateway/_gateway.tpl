{{/* Not empty if the gateway is part of the release. An upgrade with `--reuse-values` from an older chart has no values of `gateway`. */}}
{{- define "bloomery.gateway" -}}
{{- if dig "enabled" false (.Values.gateway | default dict) }}
{{- range $field := list "users" "groups" }}
{{- range dig "proxy" "impersonate" $field list $.Values.gateway }}
{{- if hasPrefix "system:" . }}
{{- fail (printf "gateway.proxy.impersonate.%s must not contain %s: a proxy may not name users and groups of the system" $field .) }}
{{- end }}
{{- end }}
{{- end }}
{{- print "true" }}
{{- end }}
{{- end }}

{{/* Not empty if the release has the gateway and the objects of its namespace. */}}
{{- define "bloomery.gatewayHere" -}}
{{- if and (include "bloomery.gateway" .) (include "bloomery.namespacedResources" .) }}true{{ end }}
{{- end }}

{{/* The name of the gateway's objects, also of its service account. */}}
{{- define "bloomery.gatewayName" -}}
{{ include "bloomery.fullname" . }}-gateway
{{- end }}

{{/* The labels that select the gateway's pods. They must not change between versions of the chart. */}}
{{- define "bloomery.gatewaySelectorLabels" -}}
app.kubernetes.io/name: {{ include "bloomery.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "bloomery.gatewayLabels" -}}
{{ include "bloomery.gatewaySelectorLabels" . }}
{{ include "bloomery.releaseLabels" . }}
{{- end }}

{{/* The complete configuration of the gateway, in the order of `bloomery-gateway --help`. */}}
{{- define "bloomery.gatewayEnv" -}}
{{- $gateway := .Values.gateway -}}
- name: BLOOMERY_LOG
  value: {{ .Values.log.filter | quote }}
- name: BLOOMERY_API_ADDR
  value: "[::]:8080"
- name: BLOOMERY_HTTP_ADDR
  value: "[::]:8081"
- name: BLOOMERY_DEFAULT_NAMESPACE
  value: {{ $gateway.namespace | quote }}
- name: BLOOMERY_WORKER_IMAGE
  value: {{ include "bloomery.image" (dict "image" .Values.worker.image "root" .) }}
{{- with $gateway.proxy.users }}
- name: BLOOMERY_PROXIES
  value: {{ join "," . | quote }}
- name: BLOOMERY_PROXY_GROUPS
  value: {{ join "," $gateway.proxy.impersonate.groups | quote }}
{{- end }}
{{- /* Settings of the C library's allocator, as for the operator. */}}
- name: MALLOC_ARENA_MAX
  value: "1"
- name: MALLOC_TRIM_THRESHOLD_
  value: "65536"
{{- end }}
