{{/* The admission policies of the chart before they had match conditions. A test computes the digests that the operator accepts from them. */}}
{{- define "bloomery.approvalsPolicy" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [bloomery.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [approvals, approvals/status]
      scope: Namespaced
variables:
  - name: isOperator
    expression: request.userInfo.username == {{ include "bloomery.operatorUser" . | squote }}
  - name: isServiceAccount
    expression: request.userInfo.username.startsWith('system:serviceaccount:')
  - name: isOfStatus
    expression: has(request.subResource) && request.subResource == 'status'
  - name: decides
    expression: request.operation == 'UPDATE' && !variables.isOfStatus && has(object.spec.decision) && !has(oldObject.spec.decision)
  - name: expires
    expression: variables.decides && object.spec.decision.verdict == 'Expired'
  - name: isOfCluster
    expression: request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector']
validations:
  - expression: request.operation != 'CREATE' || variables.isOperator
    message: only the operator may create an Approval
    reason: Forbidden
  - expression: request.operation != 'CREATE' || !has(object.spec.decision)
    message: an Approval must be created without a decision
    reason: Forbidden
  - expression: request.operation != 'UPDATE' || variables.isOperator || variables.isOfCluster || (object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && object.metadata.?finalizers == oldObject.metadata.?finalizers)
    message: only the operator may change the labels, owners and finalizers of an Approval
    reason: Forbidden
  - expression: "!variables.isOfStatus || variables.isOperator"
    message: only the operator may write the status of an Approval
    reason: Forbidden
  - expression: >-
      !variables.isOfStatus || !has(object.status) || !has(object.status.counted) || object.status.counted.verdict == 'Expired'
      || (has(object.spec.decision) && object.status.counted.verdict == object.spec.decision.verdict)
    message: the verdict that counts must be the decision, or Expired
    reason: Forbidden
  - expression: "!variables.decides || object.spec.decision.by == request.userInfo.username"
    messageExpression: "'spec.decision.by must be your own name, ' + request.userInfo.username"
    message: spec.decision.by must be your own name
    reason: Forbidden
  - expression: "!variables.expires || variables.isOperator"
    message: only the operator may set the verdict Expired
    reason: Forbidden
  - expression: "!variables.decides || variables.expires || !variables.isOperator"
    message: the operator may set only the verdict Expired
    reason: Forbidden
  - expression: "!variables.decides || variables.expires || !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':') || !request.userInfo.username.endsWith('-worker')"
    message: a worker may not decide on an Approval
    reason: Forbidden
{{- if .Values.approvals.refuseServiceAccounts }}
  - expression: "!variables.decides || variables.expires || !variables.isServiceAccount"
    message: a service account may not decide on an Approval (approvals.refuseServiceAccounts)
    reason: Forbidden
{{- end }}
  - expression: >-
      !variables.decides || variables.expires
      || authorizer.group('bloomery.dev').resource('approvers').namespace(request.namespace).name(oldObject.spec.approver).check('approve').allowed()
    messageExpression: "request.userInfo.username + ' may not approve for ' + oldObject.spec.approver + ': it needs the verb approve on approvers/' + oldObject.spec.approver + ' in the group bloomery.dev'"
    message: you may not approve for this approver
    reason: Forbidden
{{- end }}

{{- define "bloomery.approvalsBinding" -}}
policyName: {{ include "bloomery.approvalsPolicyName" . }}
validationActions: [Deny]
{{- end }}

{{- define "bloomery.podsPolicy" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  # Also matches a pod that loses the label, and a Binding, whose labels the API server copies to the pod.
  objectSelector:
    matchExpressions:
      - key: bloomery.dev/job
        operator: Exists
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/*, bindings]
      scope: Namespaced
validations:
  - expression: >-
      request.userInfo.username == {{ include "bloomery.operatorUser" . | squote }}
      || (request.operation == 'UPDATE' && ['bloomery.dev/job', 'bloomery.dev/attempt'].all(label,
      object.metadata.?labels[?label] == oldObject.metadata.?labels[?label]))
    message: only the operator may create a pod with the label bloomery.dev/job, or change that label and bloomery.dev/attempt
    reason: Forbidden
  # Another image would run with the token, the Secrets and the memory of the worker. These are the fields of containers that an update can change.
  - expression: >-
      request.operation != 'UPDATE' || (object.spec.containers.map(container, container.image) == oldObject.spec.containers.map(container, container.image)
      && object.spec.?initContainers == oldObject.spec.?initContainers
      && object.spec.?ephemeralContainers == oldObject.spec.?ephemeralContainers)
    message: nobody may change the images of a worker pod, or add containers to it
    reason: Forbidden
{{- end }}

{{- define "bloomery.podsBinding" -}}
policyName: {{ include "bloomery.podsPolicyName" . }}
validationActions: [Deny]
{{- end }}

{{- define "bloomery.tokensPolicy" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE]
      resources: [serviceaccounts/token]
      scope: Namespaced
validations:
  - expression: >-
      !has(object.spec.audiences) || !('bloomery' in object.spec.audiences)
      || (has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)
    message: only a kubelet may request a token of the audience bloomery, with which a worker reports
    reason: Forbidden
{{- end }}

{{- define "bloomery.tokensBinding" -}}
policyName: {{ include "bloomery.tokensPolicyName" . }}
validationActions: [Deny]
{{- end }}
