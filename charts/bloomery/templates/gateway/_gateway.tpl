{{/* Not empty if the gateway is part of the release. An upgrade with `--reuse-values` from an older chart has no values of `gateway`. */}}
{{- define "bloomery.gateway" -}}
{{- if dig "enabled" false (.Values.gateway | default dict) }}true{{ end }}
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

{{/* The port of the gateway's Service, as an object: `name` and `port`. */}}
{{- define "bloomery.gatewayPort" -}}
{{- if .Values.gateway.tls.secretName }}
{{- dict "name" "https" "port" 443 | toJson }}
{{- else }}
{{- dict "name" "http" "port" 80 | toJson }}
{{- end }}
{{- end }}

{{/* The names under which clients may address the gateway: those of its Service, of the Ingress and the HTTPRoute, and those of the
     values. */}}
{{- define "bloomery.gatewayHosts" -}}
{{- $gateway := .Values.gateway }}
{{- $service := include "bloomery.gatewayName" . }}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) }}
{{- if $gateway.ingress.enabled }}
{{- $hosts = append $hosts $gateway.ingress.host }}
{{- end }}
{{- if $gateway.httpRoute.enabled }}
{{- $hosts = concat $hosts $gateway.httpRoute.hostnames }}
{{- end }}
{{- concat $hosts $gateway.hosts | uniq | join "," }}
{{- end }}

{{/* The complete configuration of the gateway, in the order of `bloomery-gateway --help`. */}}
{{- define "bloomery.gatewayEnv" -}}
{{- $gateway := .Values.gateway -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: BLOOMERY_LOG
  value: {{ .Values.log.filter | quote }}
- name: BLOOMERY_GATEWAY_LISTEN
  value: "[::]:8080"
- name: BLOOMERY_GATEWAY_METRICS
  value: "[::]:8081"
{{- with $gateway.namespace }}
- name: BLOOMERY_GATEWAY_NAMESPACE
  value: {{ . | quote }}
{{- end }}
- name: BLOOMERY_GATEWAY_HOSTS
  value: {{ include "bloomery.gatewayHosts" . | quote }}
{{- if $gateway.tls.secretName }}
- name: BLOOMERY_GATEWAY_TLS_CERT
  value: /etc/bloomery/tls/tls.crt
- name: BLOOMERY_GATEWAY_TLS_KEY
  value: /etc/bloomery/tls/tls.key
{{- end }}
{{- with $gateway.proxy.users }}
- name: BLOOMERY_GATEWAY_PROXY_USERS
  value: {{ join "," . | quote }}
{{- end }}
{{- if $gateway.proxy.impersonate.anyUser }}
- name: BLOOMERY_GATEWAY_IMPERSONATE_USERS
  value: "*"
{{- else if $gateway.proxy.impersonate.users }}
- name: BLOOMERY_GATEWAY_IMPERSONATE_USERS
  value: {{ join "," $gateway.proxy.impersonate.users | quote }}
{{- end }}
{{- with $gateway.proxy.impersonate.groups }}
- name: BLOOMERY_GATEWAY_IMPERSONATE_GROUPS
  value: {{ join "," . | quote }}
{{- end }}
{{- /* Settings of the C library's allocator, as for the operator. */}}
- name: MALLOC_ARENA_MAX
  value: "1"
- name: MALLOC_TRIM_THRESHOLD_
  value: "65536"
{{- end }}
